// Package settings turns the environment into the program's configuration. It is the one home of the variables: of
// their names, defaults and meanings, and of how a value is read.
//
//	environment ──▶ settings (text) ──▶ Config    for the broker, and for the commands of its operators
//	                                 └▶ Client    for commands that publish or subscribe
//
// # All problems at once
//
// Each field of the settings is text, and reading it notes a problem instead of returning an error. So one start shows
// everything that is wrong: the variable, its value and the allowed values. The broker checks its own configuration
// (broker.Config.Validate): the bounds exist only there, and a problem with a field is reported under the variable that
// sets it. Values of secrets are never shown.
//
// # Probable mistakes
//
// A variable whose name is similar to one of ours, or that other programs use for the same purpose, causes a warning
// ([Unknown]): if it were ignored, a server would be embedded although the user named another. A setting that
// contradicts another is refused, such as a directory for the embedded server together with NATS_URL.
package settings
