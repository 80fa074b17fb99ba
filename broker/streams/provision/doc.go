// Package provision creates and checks the streams of a configuration. Streams lists the wanted streams, Builder
// creates them when a broker starts, and Keyring holds the keys that are kept in the streams' metadata.
//
// Package streams creates and changes streams. This package decides which streams a configuration requires, and how a
// broker starts when a stream cannot be created or used.
//
// # Invariants
//
//   - A broker that starts waits for JetStream without a time limit. After a permanent error, the broker ends
//     immediately.
//   - An optional stream that cannot be created or used does not stop delivery. The broker then runs without the
//     journal, without pauses, without named timers if they are optional, or without sharing the lanes with other
//     instances, and logs the missing feature. It leaves out as few streams as possible.
//   - A user without permission to create or change streams can run a broker on existing streams.
//   - If new streams should have three copies by default, and the cluster has too few servers, they get one copy. A
//     configured number of copies is never reduced.
//   - If a message has the seal of an unknown key, the broker reads the keys from the streams again, at most once in
//     ten seconds.
//
// # Tried and rejected
//
// Creating each stream separately, and starting with the streams that could be created. Subjects move between streams,
// so a broker can start only if all required streams are provisioned.
package provision
