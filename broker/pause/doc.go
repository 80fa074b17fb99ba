// Package pause keeps the list of paused targets: the list itself, the record that stores it, and the copy that each
// instance acts by.
//
// # Words
//
//	pause    a pattern of targets, from the pause command until the last waiting message has left
//	lane     of a pause: the subjects on which its due messages wait
//	list     all pauses; each change makes a new version
//	record   the list as it is stored, sealed
//	owner    the instance that has the lease of the stream, and drains the lanes
//	to park  to move a due message into the lane of a pause
//
// # A lane for each pause
//
//	delaysys.pauses                      ┐ DELAY_PAUSED   the record
//	delaysys.paused.<pause>.<target…>    ┘                the lanes
//
//	[any lane] ── due, and paused ──▶ the lane of the pause ── resumed ──▶ target
//
// The worker of a lane decides about a due message as always. If its target is paused, the decision is to park it.
// Parking is a hop: the parked message is sealed, has an id of its own, and keeps its headers and its history. It waits
// in the stream and nowhere else. When the pause is resumed, the owner works its lane like any other lane: in order,
// from a cursor, within the memory of its lane. So the rules for retries, expiry, crashes and purges hold unchanged. A
// message keeps its turn at its target's rate; the pause postpones the turn by its own length (see package deliver).
//
// A message is parked for the oldest pause that matches its target. So all messages for one target wait in one lane, in
// the order of their due times, even where patterns overlap. A message that leaves the lane is parked again if a
// younger pause matches it: every message in the younger lane was due later. It is parked for an older pause only if
// the older pause is not resumed.
//
// # The states of a pause
//
//	paused ──▶ resuming ──▶ closing ──▶ over
//	   ▲           │
//	   └───────────┘ paused again
//
//	paused    due messages join the lane; nothing is sent
//	resuming  the lane drains, and due messages still join its end
//	closing   the owner found the lane empty; instances hold due messages in memory for a second, so that the messages
//	          that joined last go out before them
//	over      due messages go to their target
//
// A message that has left the lane and waits elsewhere, for a retry or a turn, does not join the lane again
// (Delay-Released), unless the pattern is paused again.
//
// # How instances agree
//
// An operator's command stores the new list by compare-and-set. Then it announces the list on the subject where
// operators ask for the status, until each instance has answered with the version that it acts by. It expects answers
// from the instances that answered before and from those in the table of owners; a dead instance leaves the table
// within six seconds. An instance acts by a version when its deliverer sends nothing more to the targets, when the
// deliverer has given back its waiting messages, and when all sent messages are flushed and answered. Brokers announce
// nothing. They read the record every 10 s while a target is paused, and twice a second while a pause ends, when a
// delay costs some order and no promise.
//
// # Trust
//
// The record, its announcements and the answers carry a seal. A client without a secret of the broker cannot make one.
// An old record has an old version: versions only rise, and are at least the writer's time. The reader skips messages
// that others have put on the record's subject, and removes them when there are many. A message that others have put
// into a lane becomes a dead letter when that lane is read, as in all lanes.
//
// # Crashes
//
//	an operator, before the record is stored         nothing has happened
//	after it is stored, before all are told          each instance reads it within 5 minutes, and at its start
//	an instance, parked and not committed            its successor parks the message again, under the same id: it is
//	                                                 stored once within the duplicate window, and twice after that
//	an instance, fired from a lane, not committed    as in all lanes: delivered again under the same id
//	the owner, while a lane drains                   its successor continues, from the first message that is stored
//	the owner, before or after it stores "closing"   the others hold due messages for MaxClosing; then these messages
//	                                                 join the lane, which the successor drains and closes
//	the owner, before it stores "over"               likewise
//	an instance that parks for a pause that is over  the owner looks at its lane every 5 s for a minute, every minute
//	                                                 for an hour, and whenever nothing is paused, and drains it
//	all, after a resumption that is not stored yet   the list still says paused: the rest waits again, and the operator
//	                                                 resumes again
//	the stream purged                                the waiting messages are gone; any instance writes the list back
//	the stream deleted                               likewise, once the stream exists again
//	the stream full, silent or gone                  messages that would be parked wait in a retry lane
//	the record unreadable at a start                 the start waits for 15 s; then it logs an error, and the broker
//	                                                 delivers to all targets
//	the record's key gone                            the listed targets stay paused until an operator looks; see below
//
// # Keys
//
// A record outlives its key: it is written only when the list changes, and a pause may last for ever. So an instance
// that reads a record under another key than the first stores the same list again, as its next version. While instances
// differ about the first key, each does so once in five minutes.
//
// A record that cannot be opened may be ours or a forger's. An instance that knows a list keeps its list and writes it
// back. An instance that starts uses such records only if there is none that it can open, and pauses their targets: a
// message to a target that an operator has stopped cannot be taken back. If there is no record at all, the instance
// writes an empty one. So a forger finds a record that can be opened, unless the secret was lost or the stream was
// purged while no instance ran.
//
// # Tried and rejected
//
//   - One lane for all paused messages, with only the target in its subjects. The messages of a resumed pause lie
//     between those of others, overlapping patterns have no order, and only a reading of the whole lane finds messages
//     without a pause.
//   - Moving the waiting messages into a retry lane, as dead letters are resent. Each message costs another write,
//     nothing moves in a full account, and messages that become due at the end overtake those in the retry lane.
//   - A stream for each pause. Rights are granted for streams by name, and an idle stream has a cost.
//   - The list in the metadata of the stream. There is no compare-and-set for metadata.
//   - Holding due messages of a paused target in their lane. A lane whose memory is full stops for all targets.
package pause
