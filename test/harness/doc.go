// Package harness has the shared parts of the end-to-end tests. It runs brokers in the process of the test, so that the
// test can stop and crash them. Its client publishes requests and reads delivered messages. Its targets are slow or
// silent, and it can leave requests of a broker to JetStream unanswered. Package natstest has the servers, the
// processes and the fake time.
package harness
