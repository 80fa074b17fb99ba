// Package harness is shared by the end-to-end tests. It runs brokers in the process of the test, which the test can
// stop and crash. It has a client that publishes requests and reads arrivals, targets in several kinds of trouble, and
// requests that go unanswered. Package natstest has the servers, the processes and the fake time.
package harness
