// Package web reports a broker's state over HTTP: to supervisors, to Prometheus, and to subcommands.
//
//	/healthz, /livez   whether the engine's loops run; if not, the process must be restarted
//	/readyz            whether messages are delivered now: connections, lanes, the embedded server's storage
//	/status            broker.Status as JSON
//	/metrics           package metrics
//	/                  package page, by Source.Page
//
// /healthz and /livez do not depend on NATS. If they did, supervisors would restart every broker in an outage of NATS,
// although a restart does not help then. No probe changes the state of the broker.
package web
