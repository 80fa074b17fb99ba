// Package publisher publishes a message for a person, once or several times.
//
// Package broker/client is for programs. A program needs errors that it can distinguish, and a person needs advice. So
// if no stream takes the message, a [Publisher] names the prefixes that have streams. If the server refuses the first
// publish, the Publisher returns immediately instead of waiting for an answer. After the publish, it requests the time
// at which the stream stored the message, because this time determines the id and the due time.
package publisher
