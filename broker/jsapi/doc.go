// Package jsapi sends requests of the JetStream API (nats-server, server/jetstream_api.go), and parses
// acknowledgements. Leaders answer all requests except direct gets (direct.go), which any replica may answer.
//
// # Why not nats.go
//
// Only a leader knows the present state of a stream: a replica may lag, and any replica may answer a direct get. If a
// stream has AllowDirect, nats.go reads only with direct gets. nats.go lacks the request of LastOfEach. Before a read,
// a delete or a purge, nats.go requests the stream's info, which needs one more permission.
//
// # Invariants
//
//   - Ask accepts an answer only if its type belongs to the request. A client that knows the inbox can make the server
//     deliver other answers there.
//   - Only ParseAck parses acknowledgements. It accepts only answers in the form of a stream's or the server's answers.
//     ackOf accepts only answers in the form of a given stream's or the server's answers.
//   - Only Outcome classifies the answers to a publish. Only this package lists the error codes that the broker
//     receives.
//   - Only RefusedOperation, RefusedSubject and WatchRefusal interpret the server's permission errors.
//   - A list of streams is complete, and includes the names of the streams without a leader.
//   - In this package, only Retry repeats a request. The caller decides what a failure means.
package jsapi
