// Package doctor diagnoses a broker from outside: it finds the causes of late or lost messages, and gives advice for
// each. It prints nothing, and reads neither flags nor the environment.
//
//	Inspector ───▶ Gather ───▶ Facts ───▶ checks ───▶ Findings
//	requests       once        data       pure        with advice
//	                           only       functions
//
// # Facts first, then checks
//
// [Gather] sends every request once and judges nothing. A missing right is a fact too. The checks are pure functions of
// the [Facts], so that a state of a server that no test can bring about still has a test. A check without the facts
// that it needs reports nothing, because another check reports the reason. A finding that only follows from a critical
// one is left out (following): a person who reads the findings at night should find one thing to do. The tests are two
// tables of situations. In those that happen to every installation doctor reports nothing, and in the others one thing.
//
// # Tried and rejected
//
// Storing a message to test for free space: doctor would fill a store that is nearly full. With a trace, the server
// makes its checks and stores nothing.
package doctor
