//! Arrow Flight: batches put to a server, as one would move them between services today.

use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Mutex;

use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightClient, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use futures_lite::{Stream, StreamExt, stream};
use tokio::sync::oneshot;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};

use crate::error::BenchError;

use super::coalesced::runtime;
use super::load::Prebuilt;
use super::peer::{Meter, Received};
use super::tally::Tally;

/// Bytes of a message at most: as many as a batch needs, so that none is split.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Puts `count` batches, and waits until the server says that it has them.
///
/// # Errors
/// When the server fails.
pub(super) fn send(to: SocketAddr, prebuilt: &Prebuilt, count: u64) -> Result<Meter, BenchError> {
    runtime()?.block_on(async {
        let channel = Channel::from_shared(format!("http://{to}"))?.tcp_nodelay(true);
        let mut client = FlightClient::new(channel.connect().await?);
        let meter = Meter::start();
        let data = FlightDataEncoderBuilder::new()
            .with_schema(prebuilt.schema())
            .with_max_flight_data_size(MESSAGE_BYTES_MAX)
            // As they are, and not unfolded.
            .with_dictionary_handling(DictionaryHandling::Resend)
            .build(stream::iter(prebuilt.batches(count).map(Ok)));
        let mut answers = client.do_put(data).await?;
        while let Some(answer) = answers.next().await {
            answer?;
        }
        Ok(meter)
    })
}

/// Serves one put, and ends.
///
/// # Errors
/// When it cannot serve, or something else comes.
pub(super) fn receive(listener: TcpListener, tally: Tally) -> Result<Received, BenchError> {
    listener.set_nonblocking(true)?;
    runtime()?.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (sender, received) = oneshot::channel();
        let sink = PutSink(Mutex::new(Some((sender, tally))));
        let service = FlightServiceServer::new(sink).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let server = Server::builder()
            .add_service(service)
            .serve_with_incoming(incoming);
        // The server goes on until the process ends; what it has received is enough.
        futures_lite::future::or(
            async {
                server.await?;
                Err(BenchError::new("the server ended before the stream did"))
            },
            async { Ok(received.await?) },
        )
        .await
    })
}

/// Takes one put.
struct PutSink(Mutex<Option<(oneshot::Sender<Received>, Tally)>>);

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn not_served<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("only put"))
}

#[tonic::async_trait]
impl FlightService for PutSink {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoExchangeStream = Answers<FlightData>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        let put = self.0.lock().ok().and_then(|mut put| put.take());
        let Some((sender, mut tally)) = put else {
            return Err(Status::unavailable("there is one put"));
        };
        let meter = Meter::start();
        let data = request
            .into_inner()
            .map(|data| data.map_err(FlightError::from));
        let mut batches = FlightRecordBatchStream::new_from_flight_data(data);
        while let Some(batch) = batches.next().await {
            tally.add(&batch?);
        }
        // Nobody waits any more when the process is about to end.
        let _ = sender.send(meter.received(tally.total()));
        Ok(Response::new(Box::pin(stream::empty())))
    }

    async fn handshake(
        &self,
        _request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        not_served()
    }

    async fn list_flights(
        &self,
        _request: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        not_served()
    }

    async fn get_flight_info(
        &self,
        _request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        not_served()
    }

    async fn poll_flight_info(
        &self,
        _request: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        not_served()
    }

    async fn get_schema(
        &self,
        _request: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        not_served()
    }

    async fn do_get(
        &self,
        _request: Request<Ticket>,
    ) -> Result<Response<Self::DoGetStream>, Status> {
        not_served()
    }

    async fn do_exchange(
        &self,
        _request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        not_served()
    }

    async fn do_action(
        &self,
        _request: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        not_served()
    }

    async fn list_actions(
        &self,
        _request: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        not_served()
    }
}
