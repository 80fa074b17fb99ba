// Package service answers requests about named timers on delayctl, as a NATS micro service. Package timer/store carries
// out the requests.
//
//	Service   answers requests
//	Listener  receives requests on subjects, and drains
//	Call      answers further requests, with the knowledge of packages above
//
// # The service is a deputy
//
// It publishes with the broker's rights, on a subject that the client names: the reply subject. NATS checks no
// permission for that. So it answers only below subjects where no subscriber takes an answer for a request
// (Config.ReplyPrefixes), and does nothing without such a subject: the acknowledgement of a client's publish, which the
// server sends to any subject, is no request. For the same reason this package answers the requests of "nats micro",
// and not package micro: that answers on any subject, and the answer to a ping, sent to the subject of a purge, is a
// purge.
//
// The subject determines the required right: delayctl.timer.cancel.*.orders.> is the right to cancel timers to orders,
// and delayctl.timer.cancel._schedule.plans.> the right to cancel schedules on the subjects of plans, whatever their
// targets.
//
// # Bounds
//
// The service works on 64 requests about one timer at a time, or on as many as hold 64 MiB of bodies, and on four
// requests that list, change many timers or read all lanes. Up to 2,048 and 64 requests wait for that. A tenant is the
// first token of the targets. It may have at most three quarters of the former and one of the latter, and tenants take
// turns. So a tenant waits for at most one request of each other tenant, however many those have. When too many wait,
// the tenant with the most waiting requests loses one. It is refused as busy, and so is a request that has waited for
// half its time, of three seconds or four. A refused request has done nothing.
package service
