# NATS CLI: -J waits for the acknowledgement
nats pub -J delay.5s.orders.expire '{"id":42}'
nats pub -J delayin.1500ms.orders.expire '{"id":43}'

# at a time, at least five seconds ahead (GNU date)
nats pub -J delay.5s.orders.expire '{"id":44}' -H "Delay-Until:$(date -u -d '+7 seconds' +%Y-%m-%dT%H:%M:%S.%3NZ)"
