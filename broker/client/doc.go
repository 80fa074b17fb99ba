// Package client asks a delay broker for delays, from a Go program. A program needs no more than a NATS client for
// that: PROTOCOL.md of package message says how. This package adds that mistakes fail at the call, that errors have
// names, and that the first hop is saved where that is exact.
//
//	delays, err := client.New(js, client.Config{})
//	receipt, err := delays.In(ctx, "orders.expire", 30*time.Minute, body, client.ID("order-42/expire"))
//
// [Client.In], [Client.At] and [Client.Level] wait until the message is stored. A [Publisher] does not. [Of] and
// [OfMsg] read a message that was delivered. Package clienttest has a broker for tests, with a clock that the test
// moves.
//
// # Errors
//
// What a broker would make a dead letter at once is an error here: requests are read by the broker's own parser before
// they are published. What the installation's settings decide, such as the longest delay, is in [Config]. Only what
// nobody can know at the call can still be a dead letter: a target that refuses, a time that passes.
//
// After an error nothing is stored, with two exceptions that say so: [ErrUnanswered] and [ErrForeign]. After
// ErrUnanswered publish again, with the same [ID] and the same delay.
//
// # The first level
//
// A broker has a stream for each of some delays, its levels. A message for a level's delay that is published to that
// level's subject waits there and is delivered. Through the intake it would be stored and moved once more. So In
// publishes to the level wherever a level is as long as the delay:
//
//	In(ctx, "orders.expire", 90*time.Minute, …)    delay.90m.orders.expire     DELAY_90m
//	In(ctx, "orders.expire", 17*time.Minute, …)    delay.17m.orders.expire     DELAY_INTAKE, as 17m is no level
//	In(ctx, "orders.expire", 1234*time.Second, …)  delayin.20m34s.orders.expire
//
// It need not know the levels for that. A broker's intake listens on the plain durations that people use, except for
// those of levels; so the subject with the duration's usual name is that of the level if there is one, and of the
// intake otherwise. Levels with names that nobody would guess are named in Config.Levels, or read by
// [Client.ReadLevels].
//
// Levels come and go while a client lives. Nothing that it believes about them decides when a message is delivered: the
// subject carries the whole delay, and the broker counts it from the server's timestamp. Where no stream listens, the
// server says so, and has certainly not stored the message; it is published again through the intake, and for a minute
// others of that delay go there at once. A level that has come since only costs a hop until somebody reads the levels.
//
// # Named timers
//
// With [Key] a message of In or At is a timer: while it is pending it can be replaced, moved and cancelled. Each of
// these is one publish that the stream stores or refuses by itself, so the answer is exact with the broker up or down:
//
//	r, err := delays.In(ctx, "orders.expire", 30*time.Minute, body, client.Key("order-42"), client.IfAbsent())
//	r, err = delays.Move(ctx, "order-42", "orders.expire", r.Sequence, time.Hour, body)
//	err = delays.Cancel(ctx, "order-42", "orders.expire", r.Sequence)
//
//	nil              it is done: that generation will never be delivered
//	ErrConflict      it is not: it has fired, or somebody else was first; [Client.Timer] tells
//	ErrUnanswered    not known: the same call again ends in one of the other two
//
// With [Every] or [Cron] a timer recurs; what arrives says which round it is ([Arrival]):
//
//	r, err = delays.Schedule(ctx, "reports.run", body, client.Key("nightly"), client.Cron("0 3 * * *", "Europe/Berlin"))
//	err = delays.CancelAny(ctx, "nightly", "reports.run")
//
// A conflict after ErrUnanswered may come from that earlier call. For Cancel, Timer decides it: StateCancelled with
// this generation means that it was cancelled while it was pending, by whomever.
//
// # What was tried and rejected
//
// The first level of a delay that is no level, such as delay.90m with Delay-Until for 1h47m. Delay-Until is a time, so
// the client would have to add the delay to its own clock; where that is behind the server's, the message is early. A
// duration that counts from the server's timestamp and is longer than the level cannot be said on a level's subject.
//
// The first level of a time, such as delay.90m with Delay-Until. The time is exact, but the message becomes a dead
// letter if it is stored less than 90m before it: by a client whose clock is behind, or after a wait in the buffer of a
// lost connection. Through the intake it is delivered whenever it is stored. A margin makes that rarer and does not end
// it. Whoever accepts it can say it: [Client.Level] with [Until].
//
// The intake for a message with an ID when the level's stream does not listen. It may only have no leader at the
// moment, and have stored the message before that: streams know nothing of each other's ids, so there would be two.
// With an ID the subject depends on the delay alone.
//
// Publishing again, elsewhere, what was not answered: it may be stored, and there would be two.
//
// To wait for each answer in a goroutine of its own, instead of publishing asynchronously: messages of one caller would
// be stored in any order.
package client
