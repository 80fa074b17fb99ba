// Package service answers requests on the subjects delayctl.>, as a NATS micro service. It knows no single request: its
// endpoints come from package operation.
//
//	Service   passes requests to its endpoints, and their results to the clients
//	Listener  receives requests on subjects; when its context ends, it still passes on the requests that wait
//
// # Reply subjects and permissions
//
// The service publishes with the broker's permissions on the reply subject, which the client names. NATS does not check
// the client's permission for that subject. So the service answers only below subjects where no subscriber mistakes an
// answer for a request (Config.ReplyPrefixes), and ignores messages without such a reply subject.
//
// For the same reason this package itself answers the requests of "nats micro". Package micro answers on any reply
// subject. If a client sent a ping whose reply subject is that of a purge request, the answer would purge a stream.
//
// The permission to publish on the subject of a request is the right to make the request. For example, the permission
// for delayctl.timer.cancel.*.orders.> is the right to cancel timers with targets below orders. The permission for
// delayctl.timer.cancel._schedule.plans.> is the right to cancel schedules on subjects below plans, with any target.
//
// # Bounds
//
// The service has two queues. One is for requests about one object, and has up to 64 workers. The other is for requests
// that list or change many, or read all lanes, and has four workers.
//
// A tenant is the first token of the targets. For a schedule, it is the tenant of the schedule's subject: see
// message.ScheduleRules.Tenant. A tenant may occupy at most three quarters of the workers of the first
// queue, and one worker of the second. Tenants with waiting requests take turns, with one request each. If a queue is
// full, a request of the tenant with the most waiting requests is refused as busy. A request that has waited for half
// of its timeout is refused, too. A refused request has changed nothing.
package service
