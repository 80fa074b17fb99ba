// Package doctor diagnoses a broker from outside: it finds out what keeps messages from being on time, or from being
// kept, and says what to do. It prints nothing, and reads neither flags nor the environment.
//
//	Inspector ───▶ Gather ───▶ Facts ───▶ checks ───▶ Findings
//	looks          asks        judge      pure        with what to do
//	               once        nothing    functions
//
// # Facts first, then checks
//
// [Gather] asks everything once and judges nothing. What it may not ask is a fact too. The checks are pure functions of
// the [Facts], so that a state of a server that no test can bring about still has a test. A check without the facts
// that it needs says nothing, because another check gives the reason. A finding that only follows from a critical one
// is left out (following): a person who reads them at night should find one thing to do. The tests are two tables of
// situations. In those that happen to every installation doctor says nothing, and in the others one thing.
//
// # Tried and rejected
//
// Storing a message to see whether there is room: doctor would fill what is nearly full. The server goes through its
// checks for a trace, and stores nothing.
package doctor
