// Package layout is the streams of a broker: which there are, how they are configured, by which marks they are known,
// and how they are brought into being.
//
// It knows streams by their configuration and never reads a message. What is read from them, and by whom, is the
// business of packages lane and lease.
//
//   - A stream is ours by its metadata, not by its name (Spec). A stream of our name without our marks is somebody's,
//     and is not touched.
//   - What is missing is created; what is there is changed only in the subjects it listens on, when the ladder changes
//     (Provisioner). A subject moves from stream to stream, and never belongs to two.
//   - Any other difference is reported and left alone (Drift): somebody may have had a reason.
//   - A stream of a level that the ladder has no more is found by its marks, and is served until it is empty.
//   - The secret of the brokers' seals is kept in the metadata of every stream, so that it is lost only with all of
//     them (Secrets).
package layout
