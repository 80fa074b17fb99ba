// Package terminal prints the output of commands: tables, charts, progress and JSON. It depends neither on flags nor on
// NATS.
//
//   - On a terminal a table has borders and is no wider than the screen. In a pipe it has a line for each row, with all
//     columns, uncut, for awk and for logs.
//   - JSON is indented on a terminal. In a pipe each value is one line.
//   - Progress is drawn on stderr, on a terminal only, and removed afterwards.
//   - Text from others (names of streams, subjects, errors) cannot control the terminal: a cell has no control
//     characters and a bounded length.
package terminal
