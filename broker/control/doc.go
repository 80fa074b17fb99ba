// Package control is what can be done to named timers: look at one, set, cancel, move and fire it, list many, and
// cancel or move many. The operator's verbs do it by themselves, with the broker up or down; a broker does it for those
// who ask on delayctl (Service).
//
//	Timers    reads the last entry of a subject at the leader, and publishes what timer.Decide says
//	List      a pass through the stream's headers, page by page
//	Bulk      a verb for all timers of a page
//	Service   answers requests, as a NATS micro service
//	Listener  receives requests on subjects, and drains
//	Call      what the service answers besides, with what packages above know
//
// A schedule as of nats-server is a timer, by the name _schedule.<its subject>. Its target stands in its entries. So a
// list for a target takes a pass of its own through the headers of all schedules. What is written about one needs our
// seal. A dry run makes the entries that would be published, and counts as refused what cannot be made.
//
// # Every answer is final, or unknown
//
// Every verdict is one publish that expects a generation, so the stream's leader decides. What it said is final: an
// acknowledged cancel is never delivered, and a timer that is too late has fired. What it did not say is looked up:
// each request has a word of its own, which travels with what it writes, and with what becomes of that. So a lost
// acknowledgement is no loss, nor is a refusal by a leader that was deposed. Where another client, which expects
// nothing, has put something over it, what came right behind the generation tells. Where nothing can tell any more, the
// answer is unknown.
//
// An error says that nothing was done.
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
// Eight requests about one timer are worked on at a time, each with the body of its timer in memory, and one that
// lists, goes through many or looks at all lanes. Further ones wait, a few; the rest is told that the service is busy.
// A page ends after so many timers, bytes or entries, or before the asker loses patience, and says where to go on.
package control
