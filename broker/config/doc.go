// Package config defines the configuration of a broker: its fields, their defaults and bounds, and the errors of an
// invalid configuration.
//
// The package has all defaults and bounds. The command's variables, the operator's commands and the engine use them. An
// error names the field, and the command replaces the name by that of the variable.
//
// # Invariants
//
//   - The zero value of a field means its default, which Config.Complete fills in. The command repeats the defaults for
//     its help, and a test compares the two (TestDefaultsAreTheBrokers).
//   - All problems are reported at once, as FieldErrors.
//   - A complete configuration is valid. The parts of the engine get a complete configuration, and do not check it
//     again.
//
// # Tried and rejected
//
// Different retry waits in one stream. A stream is read in order, so a message behind one with a longer wait would be
// late. So each wait is a level with its own stream, and the parser expands a doubling into levels.
//
// A second set of bounds in the command, which reads the variables. The two sets diverged.
//
// This code in package broker. Every user of a default, such as a command that runs no engine, would depend on the
// engine.
package config
