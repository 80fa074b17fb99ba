// Package settings turns the environment into what the program goes by. It is the one home of the variables: their
// names, defaults, meanings, and how a value is read.
//
//	environment ──▶ settings (text) ──▶ Config    for what serves, and for the verbs of those who run it
//	                                 └▶ Client    for verbs that publish or subscribe
//
// # All problems at once
//
// Each field of the settings is text, and reading it notes a problem instead of returning an error. So one start shows
// everything that is wrong: the variable, its value and what it may be. What a broker takes, the broker says
// (broker.Config.Validate): its bounds stand there only, and a problem with a field is shown under the variable that
// sets it. Values of secrets are never shown.
//
// # What is probably a mistake
//
// A variable that is nearly one of ours, or that other programs use for the same, is warned of ([Unknown]): if it were
// ignored, a server would be embedded although somebody named another. A setting that contradicts another is refused,
// such as a directory for the embedded server beside NATS_URL.
package settings
