// Package pause keeps the list of paused targets, the record that stores the list, and the copy that each instance
// applies.
//
// # Words
//
//	pause    a pattern of targets, from the pause command until the last waiting message has left
//	lane     the subjects on which the due messages of one pause wait
//	list     all pauses; each change makes a new version
//	record   the list as it is stored, with a seal
//	to park  to move a due message into the lane of a pause
//	to apply a list   to stop sending to its paused targets; see "How instances agree"
//
// # A lane for each pause
//
//	delaysys.pauses                      ┐ DELAY_PAUSED   the record
//	delaysys.paused.<pause>.<target…>    ┘                the lanes
//
//	[any lane] ── due, and paused ──▶ the lane of the pause ── resumed ──▶ target
//
// The worker of a lane decides about a due message as always. If its target is paused, the decision is to park it.
// Parking is a hop: the parked message is sealed, and has another Nats-Msg-Id. It keeps its number of refused attempts.
// It waits in the stream, and takes no memory of a broker. When the pause is resumed, the active instance reads the
// lane like any other lane. It drains several lanes at the same time, so a silent target of one pause delays no other
// pause. The rules for retries, expiry, crashes and purges hold unchanged. If a message has a send time that its
// target's rate reserved, the pause postpones that time by the length of the pause (see package deliver).
//
// A message is parked for the oldest pause that matches its target. So all due messages for one target join the same
// lane, in the order of their due times, even where patterns overlap. A message that leaves its lane is parked again if
// a younger pause matches its target. The messages of the target stay in order, because every message that joins the
// younger pause's lane directly is due later. A message is parked again for an older pause only while that pause is not
// being resumed.
//
// # The states of a pause
//
//	paused ──▶ resuming ──▶ closing ──▶ over
//	   ▲           │
//	   └───────────┘ paused again
//
//	paused    due messages join the lane; nothing is sent
//	resuming  the lane drains, and due messages still join its end
//	closing   the active instance found the lane empty; due messages wait in memory for three seconds at most, so
//	          that the last messages of the lane are sent before them
//	over      due messages are sent to their target
//	open      like over, but the pause has quiet hours (hours.go), and stops its targets again when they begin
//
// A closing pause may also be paused again. If it is not over after three seconds, or another instance becomes active,
// it is resuming again. A message that has left the lane and waits elsewhere, for a retry or for a send time that a
// rate reserved, does not join the lane again, unless the pattern is paused again: see Delay-Released.
//
// # How instances agree
//
// An operator's command stores the new list by compare-and-set. Then it repeats an announcement of the list, on the
// subject of status requests, until each instance has answered that it has applied the list, or a timeout ends. The
// command expects answers from the active instance, and from the instances that answered a status request before the
// change; a stand-by that answers no more is dead. An instance has applied a list when its deliverer sends nothing more
// to the paused targets, has given back the messages that waited for them, and has waited for the answers to the
// messages that it sent to them. This takes four seconds at most. A message that got no answer in this time is parked
// later, under the same id. Brokers do not announce lists. They read the record every 10 s while a target is paused,
// and twice a second while a pause ends. A late read at the end of a pause may change the order of messages, and breaks
// no promise.
//
// In the code: inspect/pauses.go stores and announces the list, and broker/answer.go receives it (Keeper.Receive).
// broker/pauses.go stops the deliverer (Halt). A worker takes the list together with the present time (worker.moment),
// and engine/parking.go decides for each due message. A message that Halt gives back is due again, and is parked.
// engine/pauses.go drains the lanes.
//
// # Trust
//
// The record, its announcements and the answers carry a seal. A client without a secret of the broker cannot make a
// seal. Versions only rise, so an instance ignores an old record that a client sends again. On the record's subject, a
// reader skips messages without a valid seal, and tidy may remove them. In a lane, a message without a valid seal
// becomes a dead letter when that lane is read, as in all lanes.
//
// # Crashes
//
//	the command dies before the record is stored     no change
//	the command dies after the record is stored      each instance reads the record within 5 minutes, and at its start
//	an instance dies after parking a message,        its successor parks the message again, under the same id: it is
//	before it purges the message's old lane          stored once within the duplicate window, and twice after that
//	an instance dies after firing from a lane,       the message is delivered again under the same id, as in all lanes
//	before it purges the lane
//	the active instance dies while a lane drains     its successor continues, from the first stored message
//	it dies before it stores "over"                  the other instances hold due messages for MaxClosing; then these
//	                                                 messages join the lane, which the successor drains and closes
//	an instance with an old list parks a message     the active instance drains the lane; it looks there every 5 s for
//	for a pause that is over                         a minute, then every minute while the pause is in the list, and
//	                                                 after that at least hourly while no target is paused
//	a resumption could not be stored, and all        the pause is "paused" again: messages that have not left the lane
//	instances that learned of it die                 wait, and the operator resumes the pause again
//	the stream is purged                             the waiting messages are lost; any instance writes the list back
//	the stream is deleted                            the waiting messages are lost; an instance writes the list back
//	                                                 when the stream exists again
//	the stream is full, silent or missing            messages that would be parked wait in a retry lane
//	the record cannot be read at a start             the start waits for 15 s; then it logs an error, and the broker
//	                                                 delivers to all targets until it has read the record
//	the record's key is lost                         the listed targets stay paused until an operator acts; see below
//
// # Keys
//
// A record may outlive its key: it is written only when the list changes, and a pause may have no end. Brokers seal
// with their first key. So an instance that reads a record under another key than the first stores the same list again,
// as its next version. While instances differ about the first key, each instance does so at most once in five minutes.
//
// A record under an unknown key may be a broker's or a forger's. An instance that knows a list keeps its list and
// writes it back. An instance that starts uses such records only if there is no record that it can open. In that case
// it pauses the targets in these records, because a message that was sent to a stopped target cannot be taken back. If
// there is no record at all, the instance writes an empty record. So a forged record has an effect only if the secret
// was lost, or the stream was purged while no instance ran.
//
// # Tried and rejected
//
//   - One lane for all paused messages, with only the target in its subjects. The messages of a resumed pause lie
//     between messages of other pauses, and messages whose pause is over are found only by reading the whole lane.
//   - Moving the waiting messages into a retry lane, as dead letters are resent. Each message costs another write, no
//     message can be moved while the account is full, and messages that become due at the end overtake those in the
//     retry lane.
//   - A stream for each pause. Permissions are granted for streams by name, and an idle stream has a cost.
//   - The list in the metadata of the stream. There is no compare-and-set for metadata.
//   - Holding due messages of a paused target in their lane. A lane whose memory is full stops for all targets.
package pause
