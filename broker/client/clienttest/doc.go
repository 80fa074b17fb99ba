// Package clienttest provides a fake broker for tests of programs that use package client. It needs no server, and the
// test moves its clock.
//
//	fake := clienttest.New(t, client.Config{})
//	app := orders.New(fake.Client())        // the program under test has a real *client.Client
//	app.Place("42")
//	arrived := fake.Advance(30 * time.Minute)
//
// The fake parses requests with the broker's own parser. Its streams have sequences, detect duplicate ids, and refuse
// messages that are too large. Delivered messages have the headers that a broker writes. TestFakeIsLikeTheBroker, in
// package client, runs one scenario on a real broker and on the fake, and compares all receipts, errors and messages.
//
// The fake differs from a broker in these points. It delivers each message exactly once, and exactly at its due
// time. If a message is already due when it is stored, the next Advance delivers it, even Advance(0). A target
// refuses a message only after [Fake.Refuse], and there are no crashes and no rates. Of the bounds of streams, the
// fake has only the message size. The fake stores fewer messages for a timer than a broker, so generations have other
// numbers.
package clienttest
