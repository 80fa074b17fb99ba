// Package provision makes the streams of a configuration and checks them: which there should be (Streams), how they
// come into being when a broker starts (Builder), and the keys that are kept in them (Keyring).
//
// Package layout knows streams in general; this package knows which of them a configuration wants, and what a broker
// does when it cannot have them.
//
// # Invariants
//
//   - A broker starts when JetStream answers, however long that takes. It ends at once for what time does not heal.
//   - Streams that messages can do without hold up no message: the broker goes on without the journal, without pauses,
//     without named timers if nobody insists on them, or without sharing the work, and says so. It does without as few
//     as possible.
//   - A user without the right to create or change streams can run a broker on those that are there.
//   - Where streams are to have three copies and there is no room, new ones get one, unless a number was asked for.
//   - Keys are looked for in the streams again when a message has the seal of an unknown one, at most every ten
//     seconds.
//
// # What was tried and rejected
//
// To try each stream by itself and to go on with those that work: subjects move between streams, so a set of streams is
// fit for a start or is not.
package provision
