// Package settings turns the environment into the program's configuration. It has the names, defaults and meanings of
// all variables, and parses their values.
//
//	environment ──▶ settings (text) ──▶ Config    for the broker, and for the commands of its operators
//	                                 └▶ Client    for commands that publish or subscribe
//
// # All problems at once
//
// Each field of the settings is text. The parser of a field notes a problem instead of returning an error. So one start
// shows all problems, each with the variable, its value and the allowed values. The broker checks its own configuration
// (broker.Config.Complete). Only the broker defines the bounds. A problem with a field of this configuration is
// reported under the field's variable. Values of secrets are never shown.
//
// # Probable mistakes
//
// A variable causes a warning ([Unknown]) if its name begins with DELAY_ and is not a setting, or if other programs use
// it in place of a setting. Without the warning, the broker might embed a server although the user named another
// server. A setting that contradicts another is refused, such as a directory for the embedded server together with
// NATS_URL.
package settings
