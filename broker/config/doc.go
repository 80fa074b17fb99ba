// Package config defines the configuration of a broker: its fields, their defaults and bounds, and the errors of an
// invalid configuration.
//
// All defaults and bounds are here. The command's variables, the operator's commands and the engine all use them. An
// error names the field, and the command replaces the field by the variable.
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
// Different retry waits in one stream: a stream is read in order, so the messages after a long wait would be late. The
// waits are names of levels, and the parser expands a doubling into levels.
//
// A second set of bounds in the command, which reads the variables: the two sets diverged. This code in package broker:
// every user of a default, such as a command that runs no engine, would depend on the engine.
package config
