// Package service answers requests about named timers on delayctl, as a NATS micro service. Package timer/store carries
// out the requests.
//
//	Service   answers requests
//	Listener  receives requests on subjects, and drains
//	Call      answers a further request, for a package above this one
//
// # The service is a deputy
//
// The service publishes with the broker's permissions on the reply subject, which the client names. NATS does not check
// the client's permission for that subject. So the service answers only below subjects where no subscriber mistakes an
// answer for a request (Config.ReplyPrefixes), and ignores messages without such a reply subject.
//
// For the same reason this package itself answers the requests of "nats micro". Package micro answers on any reply
// subject. If a client sent a ping with the subject of a purge as the reply subject, the answer would purge a stream.
//
// The permission to publish on the subject of a request is the right to make the request. For example, the permission
// for delayctl.timer.cancel.*.orders.> is the right to cancel timers with targets below orders. The permission for
// delayctl.timer.cancel._schedule.plans.> is the right to cancel schedules on subjects below plans, with any target.
//
// # Bounds
//
// The service has two queues: one for requests about one timer, with up to 64 workers, and one for requests that list
// or change many timers, or read all lanes, with four workers.
//
// A tenant is the first token of the targets. A tenant may occupy at most three quarters of the workers of the first
// queue, and one worker of the second. Tenants take turns, so a tenant waits for at most one request of each other
// tenant. If a queue is full, the tenant with the most waiting requests loses one: it is refused as busy. So is a
// request that has waited for half of its timeout. A refused request has changed nothing.
package service
