// Package streams defines the streams of a broker: their configuration, the metadata that marks them as the broker's,
// and their creation.
//
// This package reads the configuration of streams, and never a message.
//
// # Invariants
//
//   - A stream is the broker's if its metadata has the broker's marks with the stream's own name; the name alone proves
//     nothing. The broker does not change a stream that has the name of one of the broker's streams but not the marks,
//     nor a copy of one, whose marks have another name (Copies).
//   - Provisioning creates missing streams (Provisioner). In existing streams it changes the subjects and the
//     configured bounds, and it adds missing marks of seals. A subject moves from stream to stream, and never belongs
//     to two.
//   - Any other difference that can harm messages is reported and not changed (Drift), because an operator may have had
//     a reason.
//   - If a level is no longer configured, the broker finds the level's stream by the marks, and still serves the
//     stream.
//   - A seal is the signature by which brokers recognise their own messages. If no secret is configured, every stream
//     keeps the secret of the seals in its metadata, so that the secret is lost only if all streams are lost (Secrets).
//
// # Tried and rejected
//
// Removing all subjects from their streams first, and then adding them to other streams. With forty levels, the
// clients' subjects had no stream for a tenth of a second. Subjects move level by level instead: see move.
//
// A quota for each target, which the server holds: max_msgs_per_subject with discard_new_per_subject on the intake and
// the levels. The server counts subjects. In the intake, the duration or the time stands before the target, so each
// request of a flood has its own subject (TestQuotaByTargetEscaped); so has each target that contains an id, and each
// timer. The limit also counts our own hops. If hops had tokens of their own to escape it, as in
// delaysys.hop.<level>.<n>.<target>, they would carry such a flood from the intake into the levels. If only the first
// hop counted, the flood would stay in the intake, whose room is everybody's. All markers of timers share one subject.
// A tenant that needs a quota has a prefix of its own, with DELAY_MAX_PENDING (TestQuotaByPrefix).
package streams
