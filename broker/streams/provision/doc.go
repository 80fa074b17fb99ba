// Package provision decides which streams a configuration needs, and how a broker starts when a stream cannot be
// created or used. Package streams creates and changes the streams. Streams lists the wanted streams, Builder
// provisions them when a broker starts, and Keyring holds the keys of the seals. A key is derived from a secret, which
// is configured or in the streams' metadata.
//
// # Invariants
//
//   - At its start, a broker waits for JetStream without a time limit. After a permanent error, the broker ends
//     immediately.
//   - If an optional stream cannot be provisioned, the broker delivers without this stream, and logs the missing
//     feature: pauses, the journal, or named timers if these are optional. The stream of owners is optional only while
//     it is missing. The broker leaves out as few streams as possible.
//   - A user without permission to create or change streams can run a broker on existing streams.
//   - If the number of replicas is not configured, and the cluster has no room for three, new streams have one replica.
//     A configured number of replicas is never reduced.
//   - If a message has the seal of an unknown key, and no secret is configured, the broker reads the secrets from the
//     streams again, at most once in ten seconds.
//
// # Tried and rejected
//
// Creating each stream separately, and starting with the streams that could be created. Subjects move between streams,
// so a broker can start only if all required streams are provisioned.
package provision
