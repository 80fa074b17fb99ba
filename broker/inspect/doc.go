// Package inspect is what can be found out about a broker from outside: by the questions that JetStream and the
// running instances answer, without being one of them. It is what the operator's verbs know. It prints nothing, and
// reads neither flags nor the environment.
//
//	Session ───▶ Inspector ──┬── Look       Lanes: what each stream holds, and who reads it
//	one user's   one         ├── Where      Whereabouts of one message
//	connection   broker's    ├── Retrying   what waits in the retry lanes, by target
//	             streams     ├── Gather     Facts ───▶ Findings, each with what to do
//	                         ├── Provision  what was created and changed
//	                         ├── Journal    what became of deliveries, and what that answer is worth
//	                         └── Letters    the dead letters: count them, resend them, remove them
//
// # A question that is refused is not answered
//
// The server says that it refused a publish or a subscription on the connection, apart from all answers, and names
// the subject. Whoever waits would wait for the whole of [Patience]. So a [Session] hears every refusal and ends the
// question that is asked at the time: two kinds of caller use that.
//
//   - A verb that needs all its answers takes a context of [Session.Allowed]: the first refusal ends the verb, with
//     the refusal as its error ([Cause]). Half a table would mislead.
//   - Gather wants to know what is refused. It asks one question after the other, goes on without the answer, and
//     remembers the refusal as a fact. When it may not even listen to answers, it asks nothing more.
//
// # Facts first, then checks
//
// Gather asks everything once and judges nothing. The checks are pure functions of the [Facts], so that every state
// of a server that no test can bring about has a test all the same. A check that has nothing to go by says nothing:
// the reason is another check's finding. In the same way a finding that only follows from a critical one is left out
// (following): whoever reads them at night should find one thing to do. The tests are two tables of situations: in
// those that happen to every installation nothing is said, in the others one thing.
//
// # Whom to believe
//
// Who reads a lane is known from three sources, the better first: what a running instance says of itself, what the
// server says of its consumer, and the table that the instances keep. Any client with the right to publish below the
// subject of an answer can have written the first. So the answers are shown to people, and nothing is done on their
// account.
//
// # What the settings leave open, the streams say
//
// A person's shell seldom has the broker's settings. Judged by the defaults, every level of a broker with other
// levels would be missing, or retiring. [Inspector.Adopt] reads the prefix and the levels off the streams, where
// nobody set them.
//
// # Tried and rejected
//
//   - One question for each stream, one after the other: seconds for forty streams across an ocean. They are asked at
//     once.
//   - Asking the instances once. They hand lanes to each other, and a lane between two of them would be reported as
//     nobody's.
//   - Storing a message to see whether there is room: whoever looks would fill what is nearly full. The server goes
//     through its checks for a trace, and stores nothing.
package inspect
