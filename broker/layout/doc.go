// Package layout defines the streams of a broker: their names, their configuration, the marks by which they are known,
// and their creation.
//
// It knows streams by their configuration and never reads a message. Packages lane and lease read the messages.
//
// # Invariants
//
//   - A stream is ours by its metadata, not by its name (Spec). A stream with one of our names but without our marks is
//     not touched.
//   - Missing streams are created. Of existing ones, only the subjects change, when the ladder changes (Provisioner),
//     and the bounds that are asked for. A subject moves from stream to stream, and never belongs to two.
//   - Any other difference is reported and left alone (Drift): an operator may have had a reason.
//   - The stream of a level that is no longer in the ladder is found by its marks, and is served until it is empty.
//   - The secret of the brokers' seals is kept in the metadata of every stream, so that it is lost only with all of
//     them (Secrets).
//
// # Tried and rejected
//
// To take all subjects from their streams first, and give them to others after that, left clients without a stream for
// a tenth of a second at forty levels. Subjects move level by level instead: see move.
package layout
