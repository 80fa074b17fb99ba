// Package doctor diagnoses a broker from outside: it finds the causes of late or lost messages, and gives advice for
// each. It prints nothing, and reads neither flags nor the environment.
//
//	Inspector ───▶ Gather ───▶ Facts ───▶ checks ───▶ Findings
//	requests       once        data       pure        with advice
//	                           only       functions
//
// # Facts and checks
//
// [Gather] sends every request once and judges nothing. A missing permission is a fact too. The checks are pure
// functions of the [Facts], so that a test can cover even a state that no test server can have. A check whose facts are
// missing reports nothing, because another check reports why the facts are missing. A finding that is only a
// consequence of a critical finding is left out (consequenceOf), so that an engineer on call reads one piece of advice.
// The tests are two tables of situations. In each situation of a healthy installation doctor must report nothing. In
// each situation with a fault doctor must report one finding.
//
// # Tried and rejected
//
// Storing a message to test for free space: doctor would fill a store that is nearly full. The server performs the same
// checks for a trace, and stores nothing.
package doctor
