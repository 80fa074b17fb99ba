package service

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// This file answers the requests of "nats micro" for the instances (PING), their endpoints (INFO), and the counts of
// requests (STATS). The package documentation says why package micro does not answer them.

const (
	serviceName    = "delaybroker"
	serviceVersion = "1.0.0" // of the requests and answers, not of the program
	description    = "Looks at named timers, sets, cancels, moves, fires, pauses and resumes them"
)

// questionSubjects returns the subjects of the requests of "nats micro" to all services, to services of this name, and
// to the instance with this id.
func questionSubjects(id string) map[string]micro.Verb {
	verbs := make(map[string]micro.Verb)
	for _, verb := range []micro.Verb{micro.PingVerb, micro.InfoVerb, micro.StatsVerb} {
		root := micro.APIPrefix + "." + verb.String()
		verbs[root], verbs[root+"."+serviceName], verbs[root+"."+serviceName+"."+id] = verb, verb, verb
	}
	return verbs
}

// describe answers a request of "nats micro", and reports whether m is one.
func (s *Service) describe(m *nats.Msg) bool {
	verb, ok := s.questions[m.Subject]
	if !ok {
		return false
	}
	if body, err := encode(s.description(verb)); err == nil {
		_ = s.Conn.Publish(m.Reply, body) // it fails without a connection; the operator asks again
	}
	return true
}

func (s *Service) description(verb micro.Verb) any {
	identity := micro.ServiceIdentity{
		Name: serviceName, ID: s.id, Version: serviceVersion,
		Metadata: map[string]string{"instance": s.Instance, "prefix": s.Names.Prefix()},
	}
	switch verb {
	case micro.InfoVerb:
		info := micro.Info{ServiceIdentity: identity, Type: micro.InfoResponseType, Description: description}
		for _, e := range s.endpoints {
			info.Endpoints = append(info.Endpoints,
				micro.EndpointInfo{Name: e.Name, Subject: e.Subjects[0], QueueGroup: micro.DefaultQueueGroup})
		}
		return info
	case micro.StatsVerb:
		stats := micro.Stats{ServiceIdentity: identity, Type: micro.StatsResponseType, Started: s.started}
		for _, e := range s.endpoints {
			e.mu.Lock()
			snapshot := e.stats
			e.mu.Unlock()
			stats.Endpoints = append(stats.Endpoints, &snapshot)
		}
		return stats
	}
	return micro.Ping{ServiceIdentity: identity, Type: micro.PingResponseType}
}
