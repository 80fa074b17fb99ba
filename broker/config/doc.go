// Package config defines the configuration of a broker: its fields, their defaults and bounds, and the errors of an
// invalid configuration.
//
// It is the one home of defaults and bounds: the command's variables, the operator's commands and the engine all
// take them from here. An error names the field, so that the command can name the variable instead.
//
// # Invariants
//
//   - The zero value of a field stands for its default, which Config.Complete fills in. The command repeats the
//     defaults for its help, and a test compares the two (TestDefaultsAreTheBrokers).
//   - All problems are reported at once, as FieldErrors.
//   - A complete configuration is valid. The parts of the engine get a complete configuration, and check nothing again.
//
// # Tried and rejected
//
// Different retry waits in one stream: a stream is read in order, so the messages behind a long wait would be late. The
// waits are names of levels, and the parser expands a doubling into levels.
//
// A second set of bounds in the command, where the variables are read: the two sets diverged. This code in package
// broker: then every user of a default, such as a command that runs no engine, depends on the engine.
package config
