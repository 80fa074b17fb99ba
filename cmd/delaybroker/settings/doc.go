// Package settings turns the environment into the program's configuration. It has the names, defaults and meanings of
// all variables, and parses their values.
//
//	environment ──▶ settings (text) ──▶ Config    for the broker, and for the commands of its operators
//	                                 └▶ Client    for commands that publish or subscribe
//
// # All problems at once
//
// Each field of the settings is text. The parser of a field notes a problem instead of returning an error. So one start
// shows all problems, each with its variable. The broker checks its own configuration, including the bounds of its
// fields (broker.Config.Complete). A problem with a field of that configuration is reported under the variable that
// sets the field. The values of secrets are never shown.
//
// # Probable mistakes
//
// A variable that may be a misspelt setting causes a warning ([Unknown]): its name begins with DELAY_, or other
// programs use it for the value of a setting, such as NATS_SERVER. With NATS_SERVER instead of NATS_URL, the broker
// embeds a server, and only the warning shows the reason. A setting that contradicts another is refused, such as a
// directory for the embedded server together with NATS_URL.
package settings
