// Package publisher publishes a message for a person, once or several times.
//
// Package broker/client is for programs. A program needs errors that it can distinguish, and a person needs advice. So
// a [Publisher] names the existing streams if none takes the message. If the server refuses the publish, it ends
// immediately instead of waiting for an answer. And it requests the time at which the message was stored, from which
// the id and the due time follow.
package publisher
