// Package doctor diagnoses a broker from outside: it finds the causes of late or lost messages, and gives advice for
// each. It prints nothing, and reads neither flags nor the environment.
//
//	Gather ───▶ Facts ───▶ checks ───▶ Findings
//	requests    data       pure        with advice
//	            only       functions
//
// # Facts and checks
//
// [Gather] sends all requests, and judges nothing. A missing permission is a fact too. The checks are pure functions of
// the [Facts], so that a test can cover even a state that no test server can have. A check without its facts reports
// nothing: another check reports the reason for the missing facts. A consequence of a critical finding is not reported
// (consequenceOf), so that an engineer on call reads one piece of advice. The tests are two tables of situations. In a
// healthy situation doctor must give no warning. In a situation with a fault doctor must report only the finding about
// this fault.
//
// # Tried and rejected
//
// Storing a message to test for free space: the message would fill a nearly full store. Instead, doctor publishes a
// message with Nats-Trace-Only: the server checks it like any publish, and stores nothing.
package doctor
