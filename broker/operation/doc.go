// Package operation describes each list, look-up and change of an operator once, as data: its name, its parameters, its
// columns, and what it does. [All] is the list of all operations.
//
//	flags, words ─▶ command line ─┐                              ┌─▶ tables, --json, sentences, exit codes
//	forms, JSON  ─▶ page ─────────┼─▶ Params ─▶ Look, Plan, Act ─┼─▶ rows, columns, sentences, status codes
//	JSON, subject ─▶ service ─────┘                              └─▶ JSON
//
// A door is the command line, the page, or the service for requests on NATS subjects. A door parses texts with the
// parameters of a [Use], calls a function of the Use, and shows the result with the columns of the Operation. A door
// knows no single operation, except for a special view that a table cannot be.
//
// # Parameters
//
// A parameter has one name. With hyphens it is a flag, and with underscores a field of a form or of a JSON object. Its
// value always begins as a text. So a set of parameters travels as texts: as the flags of a command ([Use.Line]), as
// the address of a view, and as the ticket of a plan ([Use.Values]).
//
// # Plan, then act
//
// A change has two functions. Plan counts the objects, and changes nothing. It also fixes the parameters: a relative
// time becomes a time, a timer gets its generation, and a selection gets an upper bound. So an Act with the fixed
// parameters changes only what was counted. Act alone does both at once, for scripts.
//
// # Rows
//
// A row is a struct. Its JSON object is the same at each door. A [Column] names a field of that object, and the kind of
// its value. Each door has one format for each kind.
//
// # Tried and rejected
//
//   - Parameters as tags of a struct. The parsers, the completion and the bounds are functions, and a tag is a string.
//   - A function for each cell. The page draws rows in the browser, which needs the name of the field anyway.
package operation
