// Package clienttest is a broker for the tests of programs that ask for delays: without a server, and with a clock that
// the test moves.
//
//	fake := clienttest.New(t, client.Config{})
//	app := orders.New(fake.Client())        // the program under test has a real *client.Client
//	app.Place("42")
//	arrived := fake.Advance(30 * time.Minute)
//
// Requests are read by the broker's own parser, streams have sequences, remember ids and refuse what is too large, and
// what arrives has the headers that a broker writes. TestFakeIsLikeTheBroker, in package client, runs one scenario on a
// real broker and on this, and compares all that a program sees.
//
// It differs in this: everything is delivered at its time, and once. There are no targets that refuse, no retries, no
// crashes, no limits but the size. The broker's own entries of a timer are fewer, so generations have other numbers.
// What is due at the moment when it is stored is delivered by the next Advance.
package clienttest
