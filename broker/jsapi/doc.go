// Package jsapi sends requests of the JetStream API (nats-server, server/jetstream_api.go) to the leaders of streams,
// and parses acknowledgements.
//
// # Why not nats.go
//
// Only a leader knows the present state of a stream: a replica may lag, and any replica may answer a direct get.
// nats.go has no function for some requests to a leader, nor for LastOfEach. For other requests, it first requests the
// stream's info, which needs one more permission.
//
// # Invariants
//
//   - An answer is accepted only if its type is that of the request. A client that knows the inbox can have other
//     answers of the server delivered there.
//   - There is one parser of acknowledgements, ParseAck. It accepts only answers of a stream or of the server. If the
//     stream is known, AckOf accepts only answers of this stream or of the server.
//   - There is one classification of an answer to a publish, Outcome, and one list of the server's error codes.
//   - Only RefusedOperation, RefusedSubject and WatchRefusal interpret the server's permission errors.
//   - A list of streams is complete, and names the streams that no leader describes.
//   - The package decides nothing, and repeats a request only in Retry. The caller knows the meaning of a failure.
package jsapi
