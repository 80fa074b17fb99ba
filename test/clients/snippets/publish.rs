// Rust: cargo add async-nats chrono, and tokio with its features macros and rt-multi-thread
#[tokio::main]
async fn main() -> Result<(), async_nats::Error> {
    let url = std::env::var("NATS_URL").unwrap_or("nats://127.0.0.1:4222".into());
    let js = async_nats::jetstream::new(async_nats::connect(url).await?);
    // The first await sends the message, the second waits for the acknowledgement.
    js.publish("delay.5s.orders.expire", r#"{"id":42}"#.into()).await?.await?;
    js.publish("delayin.1500ms.orders.expire", r#"{"id":43}"#.into()).await?.await?;

    let at = chrono::Utc::now() + chrono::Duration::milliseconds(6_500); // at least five seconds ahead
    let mut h = async_nats::HeaderMap::new();
    h.insert("Delay-Until", at.to_rfc3339().as_str());
    js.publish_with_headers("delay.5s.orders.expire", h, r#"{"id":44}"#.into()).await?.await?;
    Ok(())
}
