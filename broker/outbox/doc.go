// Package outbox lets one connection have many publishes outstanding and learn what became of each.
//
// A publish carries a reply subject of its own below the box's inbox, and ends with exactly one call of its function:
// with the answer, or with the reason why there is none. Nobody waits in a goroutine meanwhile, so a worker can have
// tens of thousands outstanding. nats.go's PublishAsync would do for streams, but has no call-back for success, treats
// every answer as an acknowledgement, and never gives up where nobody answers.
package outbox
