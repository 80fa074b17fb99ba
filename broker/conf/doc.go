// Package conf is the configuration of a broker: what can be set, its defaults, its bounds, and what is wrong with a
// configuration.
//
// One home for defaults and bounds: the command's variables, the operator's verbs and the engine all get them here, and
// a problem names the field, so that the command can name the variable instead.
//
// # Invariants
//
//   - The zero value of a field is its default. Config.Complete fills it in. The command writes the
//     defaults out once more, for its help, and a test holds the two together (TestDefaultsAreTheBrokers).
//   - All problems are reported at once, as FieldErrors.
//   - A complete configuration has been checked. Parts of the engine get it complete, and check nothing again.
//
// # What was tried and rejected
//
// To have the bounds in the command as well, where the variables are read: the two sets came apart. To keep this in
// package broker: then whoever wants to know a default, such as a verb that runs no engine, depends on the engine.
package conf
