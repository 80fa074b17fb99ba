// Package service answers requests about named timers on delayctl, as a NATS micro service. Package timer/store carries
// them out.
//
//	Service   answers requests
//	Listener  receives requests on subjects, and drains
//	Call      what the service answers besides, with what packages above know
//
// # The service is a deputy
//
// It publishes with the broker's rights, on a subject that the asker names: the reply subject. NATS asks no permission
// for that. So it answers only below subjects where nobody takes an answer for a request (Config.ReplyPrefixes), and
// does nothing without such a subject: the acknowledgement of somebody's publish, which the server puts on any subject,
// is no request. For the same reason the questions of "nats micro" are answered here, and not by package micro: it
// answers on any subject, and the answer to a ping, put on the subject of a purge, is a purge.
//
// Who may ask for what is in the subject: delayctl.timer.cancel.*.orders.> is the right to cancel timers to orders, and
// delayctl.timer.cancel._schedule.plans.> to cancel schedules on the subjects of plans, wherever these lead.
//
// # Bounds
//
// 64 requests about one timer are worked on at a time, or as many as hold 64 MiB of bodies, and four that list, go
// through many or look at all lanes. Up to 2,048 and 64 wait for that. Each tenant, the first token of the targets, has
// three quarters of the former at most and one of the latter, and tenants have their turns one after the other. So a
// tenant waits for one request of another at most, however many those are. When too many wait, the tenant with the most
// of them loses one. It is refused as busy, and so is a request that has waited for half its time, of three seconds or
// four. A request that is refused has done nothing.
package service
