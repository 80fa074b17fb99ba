// Package publisher publishes a message for a person: once or many times, and with what broker/client leaves out.
//
// A program wants an error that it can tell from others; a person wants to know what to do. So a [Publisher] says which
// streams there are if none takes the message. It ends with the server's refusal at once, and does not wait for an
// answer that will not come. And it asks when the message was stored: the id and the due time follow from that.
package publisher
