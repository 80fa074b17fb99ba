// Package web reports a broker's state over HTTP: to supervisors, to Prometheus, and to the subcommands that ask it.
//
//	/healthz, /livez   whether a restart would help: the engine's loops turn
//	/readyz            whether messages are delivered now: connections, lanes, the embedded server's storage
//	/status            broker.Status as JSON
//	/metrics           package metrics
//	/                  package page, by Source.Page
//
// /healthz and /livez never ask NATS: an outage there would restart every broker, for nothing. No probe changes
// anything.
package web
