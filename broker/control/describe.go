package control

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// This file answers what "nats micro" asks: who is there (PING), what there is to ask (INFO), and how often that was
// done (STATS). Package micro would answer on any subject: see doc.go.

const (
	serviceName    = "delaybroker"
	serviceVersion = "1.0.0" // of the requests and answers, not of the program
	description    = "Looks at named timers, cancels them, moves them, fires them"
)

var serviceVerbs = []micro.Verb{micro.PingVerb, micro.InfoVerb, micro.StatsVerb}

// questions are the subjects on which every instance is asked.
func (s *Service) questions() []string {
	var all []string
	for _, verb := range serviceVerbs {
		all = append(all, s.subjectsOf(verb)...)
	}
	return all
}

// subjectsOf are the subjects of one question: to all services, to those of this name, and to this one.
func (s *Service) subjectsOf(verb micro.Verb) []string {
	root := micro.APIPrefix + "." + verb.String()
	return []string{root, root + "." + serviceName, root + "." + serviceName + "." + s.id}
}

// describe answers such a question, and reports whether it is one.
func (s *Service) describe(m *nats.Msg) bool {
	for _, verb := range serviceVerbs {
		for _, subject := range s.subjectsOf(verb) {
			if m.Subject == subject {
				body, err := encode(s.description(verb))
				if err == nil {
					_ = s.Conn.Publish(m.Reply, body) // it fails without a connection; the operator asks again
				}
				return true
			}
		}
	}
	return false
}

func (s *Service) description(verb micro.Verb) any {
	who := micro.ServiceIdentity{
		Name: serviceName, ID: s.id, Version: serviceVersion,
		Metadata: map[string]string{"instance": s.Instance, "prefix": s.names.Prefix()},
	}
	switch verb {
	case micro.InfoVerb:
		info := micro.Info{ServiceIdentity: who, Type: micro.InfoResponseType, Description: description}
		for _, e := range s.endpoints {
			info.Endpoints = append(info.Endpoints,
				micro.EndpointInfo{Name: e.name, Subject: e.subjects()[0], QueueGroup: micro.DefaultQueueGroup})
		}
		return info
	case micro.StatsVerb:
		stats := micro.Stats{ServiceIdentity: who, Type: micro.StatsResponseType, Started: s.started}
		for _, e := range s.endpoints {
			e.mu.Lock()
			now := e.stats
			e.mu.Unlock()
			stats.Endpoints = append(stats.Endpoints, &now)
		}
		return stats
	}
	return micro.Ping{ServiceIdentity: who, Type: micro.PingResponseType}
}
