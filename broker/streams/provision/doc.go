// Package provision creates and checks the streams of a configuration. Streams lists the wanted streams, Builder
// creates them when a broker starts, and Keyring holds the keys that are kept in them.
//
// Package streams handles streams in general. This package decides which streams a configuration wants, and what a
// broker does when it cannot have one.
//
// # Invariants
//
//   - A broker waits for JetStream without a limit when it starts. It ends immediately if an error is permanent.
//   - An optional stream that cannot be created or used delays no message. The broker then runs without the journal,
//     without pauses, without named timers if they are optional, or without sharing the work, and logs that. It leaves
//     out as few streams as possible.
//   - A user without permission to create or change streams can run a broker on existing streams.
//   - If new streams should have three copies by default and there is no room for that, they get one copy. A configured
//     number of copies is never reduced.
//   - If a message has the seal of an unknown key, the broker reads the keys from the streams again, at most every ten
//     seconds.
//
// # Tried and rejected
//
// Creating each stream separately and continuing with those that succeed. Subjects move between streams, so only a
// whole set of streams is fit for a start or not.
package provision
