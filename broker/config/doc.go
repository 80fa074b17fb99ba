// Package config defines the configuration of a broker: its fields, their defaults and bounds, and the errors of an
// invalid configuration.
//
// The engine and the command use the same defaults and bounds. An error names the field. The command replaces the name
// of the field by the name of the variable.
//
// # Invariants
//
//   - The zero value of a field means its default, which Config.Complete fills in. The command repeats the defaults for
//     its help, and a test compares these with the defaults here (TestDefaultsAreTheBrokers).
//   - Complete returns all problems together, as FieldErrors.
//   - The parts of the engine get a configuration that Complete has returned without an error, and do not check it
//     again.
//
// # Tried and rejected
//
// Different retry waits in one stream. A stream is read in order, so a message behind a message with a longer wait
// would be late. So each wait is a level with its own stream, and the parser expands a doubling into levels.
//
// A second set of bounds in the command that reads the variables. The two sets diverged.
//
// The code of this package in package broker. Every package that uses a default would depend on the engine.
package config
