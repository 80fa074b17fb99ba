// Package publisher publishes a message for a person, once or many times.
//
// Package broker/client is for programs. A program wants an error that it can tell from others; a person wants to know
// what to do. So a [Publisher] names the streams that exist if none takes the message. It ends at once when the server
// refuses the publish, and does not wait for an answer that will not come. And it asks when the message was stored: the
// id and the due time follow from that.
package publisher
