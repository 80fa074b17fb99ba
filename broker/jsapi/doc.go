// Package jsapi asks the leaders of streams questions of the JetStream API (nats-server, server/jetstream_api.go), and
// reads acknowledgements.
//
// # Why not nats.go
//
// Only a leader knows the present state of a stream. A replica may lag, and any replica may answer a direct get: see
// LastOfEach, for which nats.go has no request either. For questions to a leader, nats.go has no such questions, or
// asks for the stream's info first, which takes one more permission.
//
// # Invariants
//
//   - An answer is accepted only if its type is that of the question. Somebody who knows the inbox can have other
//     answers of the server delivered there.
//   - There is one parser of acknowledgements, ParseAck. It accepts only answers of a stream, or of the server;
//     AckOf, where the stream is known, only those of this stream, or of the server.
//   - There is one classification of an answer to a publish, Outcome, and one list of the server's error codes.
//   - There is one reader of what the server has refused: Refused, Forbidden, and Watched, which ends the waiting.
//   - A list of streams is complete, and names the streams that no leader describes.
//   - The package decides nothing, and repeats only what Retry is asked to repeat. The caller knows the meaning of a
//     failure.
package jsapi
