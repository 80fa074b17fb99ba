// Package pause knows which targets are paused: the list, the record that keeps it, and what an instance knows of it.
//
// # Words
//
//	pause    a pattern of targets, from being paused until what waited is out
//	lane     of a pause: what is due and waits for it, below a subject of its own
//	list     all pauses; each change makes a new version
//	record   the list as it is stored, sealed
//	owner    the instance that has the lease of the stream, and drains the lanes
//	to park  to move a message that is due into the lane of a pause
//
// # A lane for each pause
//
//	delaysys.pauses                      ┐ DELAY_PAUSED   the record
//	delaysys.paused.<pause>.<target…>    ┘                the lanes
//
//	[any lane] ── due, and paused ──▶ the lane of the pause ── resumed ──▶ target
//
// A message that is due is decided about as always; if its target is paused, the decision is to park it. That is a
// hop: sealed, with an id of its own, with everything that the message is and has been through. It waits in the stream
// and nowhere else. When the pause is resumed, the owner works its lane like any other lane: in order, from a cursor,
// within the memory of its lane, firing from there. So retries, expiry, crashes and purges need no thought of their
// own. A message keeps its turn at its target's rate, which is later by as long as the pause was: see package deliver.
//
// A message is parked for the oldest pause that matches its target. So all that waits for a target is in one lane, in
// the order in which it became due, also where patterns overlap. What leaves the lane and is matched by a younger pause
// is parked there, behind nothing that was due later. By an older pause it is parked only if that is not resumed: what
// has left the lanes of both goes out.
//
// # The life of a pause
//
//	paused ──▶ resuming ──▶ closing ──▶ over
//	   ▲           │
//	   └───────────┘ paused again
//
//	paused    what becomes due joins the lane; nothing is sent
//	resuming  the lane drains, and what becomes due still joins its end
//	closing   the lane was found empty; what becomes due is held in memory for a second, so that what joined last goes
//	          out before it
//	over      what becomes due goes to its target
//
// What has left the lane and waits elsewhere, for a retry or a turn, does not join it again (Delay-Released), unless
// the pattern is paused again.
//
// # How instances agree
//
// An operator stores the new list by compare-and-set. Then it announces it on the subject where operators ask
// instances how they are, until each has answered by which version it acts. These are the instances that answer, and
// those in the table of owners; one that has died leaves the table within six seconds. An instance acts by a version
// when its deliverer sends nothing more there, what waited in it was given back, and what it had sent is flushed and
// answered. Brokers themselves announce nothing: they read the record every 10 s while something is paused, and twice
// a second while a pause ends, where a delay costs some order and no promise.
//
// # Whom to believe
//
// The record and its announcements carry a seal, the answers too. Who has no secret of the broker cannot make one, and
// an old record has an old version: versions only rise, and are at least the writer's time. Messages that others had
// put on the record's subject are read past, and removed when there are many. What others had put into a lane becomes
// a dead letter when that lane is read, as in all lanes.
//
// # Crashes
//
//	an operator, before the record is stored         nothing has happened
//	after it is stored, before all are told          each reads it in time: 5 minutes at most, at once when it starts
//	an instance, parked and not committed            its successor parks it again, under the same id: stored once
//	                                                 within the duplicate window; a copy, after
//	an instance, fired from a lane, not committed    as in all lanes: delivered again under the same id
//	the owner, while a lane drains                   its successor drains on, from the first message that is stored
//	the owner, before or after it stores "closing"   the others hold what becomes due for CloseMost; then it
//	                                                 joins the lane, which the successor drains, and closes
//	the owner, before it stores "over"               likewise
//	an instance that parks for a pause that is over  its lane is looked at every 5 s for a minute, every minute for an
//	                                                 hour, and whenever nothing is paused: it drains then
//	all, after a resumption that is not stored yet   the list still says paused: what is left waits again, and the
//	                                                 operator resumes again
//	the stream purged                                what waited is gone; the list is written back by any instance
//	the stream deleted                               likewise, once it is created again
//	the stream full, silent, gone                    what would be parked goes round in a retry lane
//	the record unreadable at a start                 waited for 15 s; then all targets are delivered to, and logged
//	the record's key gone                            what it names is held until an operator looks; see below
//
// # Keys
//
// A record outlives its key: it is written when the list changes, and a pause has no end. So an instance that reads a
// record under another key than the first stores the same list again, as its next version. While instances differ about
// the first key, each does so once in five minutes.
//
// A record that cannot be opened may be ours, and may be a forger's. An instance that knows a list keeps it, and writes
// it back. One that starts reads such records only where there is none that it can open, and pauses what they name: to
// send to a target that an operator has stopped cannot be taken back. Where there is no record at all, it writes an
// empty one. So a forger finds a record that can be opened, unless the secret was lost or the stream purged while no
// instance ran.
//
// # Tried and rejected
//
//   - One lane for all that waits, with the targets alone in its subjects. What is resumed lies between what is not,
//     and overlapping patterns have no order. What nobody waits for any more could be found only by reading
//     everything.
//   - To move what waited into a retry lane, as for a dead letter that is resent. Each message costs a write more, in
//     a full account nothing would move, and what becomes due at the end overtakes what is in the retry lane still.
//   - A stream for each pause: rights are granted for streams by name, and an idle stream is not free.
//   - The list in the metadata of the stream. There is no compare-and-set for that.
//   - To hold what is due for a paused target in its lane: a lane whose memory is full stops for all targets.
package pause
