// Package client publishes delayed messages through a delay broker. A program can do the same with a plain NATS client:
// see PROTOCOL.md of package message. With this package, an invalid request fails at the call, errors match sentinels,
// and a message skips the intake if a level has exactly its delay.
//
//	delays, err := client.New(js, client.Config{})
//	receipt, err := delays.In(ctx, "orders.expire", 30*time.Minute, body, client.ID("order-42/expire"))
//
// [Client.In], [Client.At] and [Client.Level] wait until the message is stored. A [Publisher] does not wait.
// [ParseArrival] and [ParseJetStreamArrival] read the delay metadata of a delivered message. Package clienttest has a
// fake broker for tests, with a clock that the test moves.
//
// # Errors
//
// Before a publish, the client checks the request with the broker's own parser. If the request would become a dead
// letter, the call fails. [Config] has the broker's settings for this check, such as the maximum delay. A published
// message can still become a dead letter: its target may refuse the message, or the message may expire.
//
// After [ErrUnanswered] and [ErrForeign] (the answer of another stream or subscriber) the message may be stored. After
// any other error nothing is stored. After ErrUnanswered publish again, with the same [ID] and the same delay.
//
// # The first level
//
// A broker has levels, which are delays with a stream each. A message on a level's subject waits in that stream and is
// then delivered. A message in the intake moves to at least one other stream, unless it is due within seconds. So In
// publishes to a level's subject if that level has exactly the delay:
//
//	In(ctx, "orders.expire", 90*time.Minute, …)    delay.90m.orders.expire     DELAY_90m
//	In(ctx, "orders.expire", 17*time.Minute, …)    delay.17m.orders.expire     DELAY_INTAKE, as 17m is no level
//	In(ctx, "orders.expire", 1234*time.Second, …)  delayin.20m34s.orders.expire
//
// The client need not know the levels. If possible, it writes the delay as a plain duration of PROTOCOL.md, such as
// 17m. If a level has that name, the subject belongs to the level, and otherwise to the intake. The client learns a
// level with another name, such as 2500s, only from Config.Levels or [Client.ReadLevels].
//
// Levels may change while a client runs. The due time of a message does not depend on the levels: the subject contains
// the whole delay, and the broker counts the delay from the server's timestamp. If no stream listens on the subject,
// the server reports an error and stores nothing. Unless the message has an [ID], the client then publishes it again to
// the intake. For a minute it also publishes other messages with that delay to the intake. If the name of a new level
// is no plain duration, each message with its delay takes one more hop until the program reads the levels again.
//
// # Named timers
//
// With [Key] a message of In or At is a timer. The client can replace, move and cancel a pending timer. A Cancel, a
// Move, and an In or At with IfAbsent or IfGeneration are one conditional publish, which the stream stores or refuses.
// So an answer is certain, even while no broker runs:
//
//	r, err := delays.In(ctx, "orders.expire", 30*time.Minute, body, client.Key("order-42"), client.IfAbsent())
//	r, err = delays.Move(ctx, "order-42", "orders.expire", r.Sequence, time.Hour, body)
//	err = delays.Cancel(ctx, "order-42", "orders.expire", r.Sequence)
//
//	nil              success: that generation will never be delivered
//	ErrConflict      no change: the timer has fired, or was changed before; [Client.Timer] returns its state
//	ErrUnanswered    unknown: repeat the call until it returns one of the other two
//
// A program without the generation calls [Client.CancelPending] or [Client.MovePending]. These functions read the timer
// and publish. After a lost answer, they read the timer again. They report whether the change was in time. A program
// without a key publishes with [Cancelable], and calls [Receipt.Cancel]:
//
//	cancelled, err := delays.CancelPending(ctx, "order-42", "orders.expire")
//
//	r, err = delays.In(ctx, "orders.expire", 30*time.Minute, body, client.Cancelable())
//	cancelled, err = r.Cancel(ctx)
//
// With [Every] or [Cron] a timer recurs. Each delivered message has the number of its round ([Arrival]):
//
//	r, err = delays.Schedule(ctx, "reports.run", body, client.Key("nightly"), client.Cron("0 3 * * *", "Europe/Berlin"))
//	err = delays.CancelAny(ctx, "nightly", "reports.run")
//
// After ErrUnanswered, a repeated call may return ErrConflict because of the first call. After ErrConflict from Cancel,
// call [Client.Timer]. StateCancelled with this generation means that a client cancelled the pending timer.
//
// [Client.Pause], [Client.Resume], [Client.Fire] and [Client.Postpone] need a running broker. All other functions need
// only NATS.
//
// # Tried and rejected
//
//   - A delay that matches no level, published directly to its first level, such as delay.90m with Delay-Until for
//     1h47m. Delay-Until is a time, so the client would have to add the delay to its own clock. If that clock is behind
//     the server's clock, the message is early.
//   - A due time, published directly to its first level, such as delay.90m with Delay-Until. The message becomes a dead
//     letter if it is stored less than 90m before its due time. That happens if the client's clock is behind, or if the
//     message waits in the buffer of a lost connection. No margin is large enough for all cases. A program that accepts
//     the risk can use [Client.Level] with [Until].
//   - The intake as a fallback for a message with an ID. A level's stream without a leader does not answer, and may
//     have stored the message at an earlier attempt. Streams do not share their deduplication ids, so the message could
//     be stored twice. So with an ID, the subject depends only on the delay.
//   - A second publish of an unanswered message on another subject: the message could be stored twice.
//   - A goroutine for each message, instead of asynchronous publishes: the streams would store the messages of one
//     caller in any order.
package client
