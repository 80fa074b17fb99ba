// Package terminal prints the output of commands: tables, charts, progress and JSON.
//
//   - On a terminal a table has borders, and a Sheet is no wider than the screen. In a pipe it has one line for each
//     row, and no column is narrowed or left out for lack of room.
//   - JSON is indented on a terminal. In a pipe each value is one line.
//   - A progress bar is drawn on stderr, on a terminal only, and removed afterwards.
//   - Text from others (names of streams, subjects, errors) cannot control the terminal: a cell has no control
//     characters and a bounded length.
package terminal
