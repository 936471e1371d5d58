//! The same content as a unary call of tonic. Written by hand where a compiler of `.proto` files would write it, so
//! that none is needed; the messages on the wire are those it would make.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::task::{Context, Poll};

use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{Body, BoxFuture, Service, StdError, http};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity, Server, ServerTlsConfig, server::TcpIncoming};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::{Failure, Folders, Run, together};

/// A job as it is submitted.
#[derive(Clone, PartialEq, prost::Message)]
struct Job {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    model: String,
    #[prost(uint32, tag = "3")]
    batch: u32,
    #[prost(uint32, tag = "4")]
    gpus: u32,
    #[prost(string, tag = "5")]
    gpu_type: String,
    #[prost(double, tag = "6")]
    work: f64,
    #[prost(string, repeated, tag = "7")]
    argv: Vec<String>,
    #[prost(map = "string, string", tag = "8")]
    env: std::collections::HashMap<String, String>,
    #[prost(string, tag = "9")]
    working_directory: String,
    #[prost(string, tag = "10")]
    checkpoint_directory: String,
    #[prost(uint64, tag = "11")]
    log_file_bytes: u64,
    #[prost(uint32, tag = "12")]
    n_log_files: u32,
    #[prost(uint32, tag = "13")]
    most_failures: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Submit {
    #[prost(message, repeated, tag = "1")]
    jobs: Vec<Job>,
    #[prost(uint64, tag = "2")]
    key: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Submitted {
    #[prost(uint32, repeated, tag = "1")]
    jobs: Vec<u32>,
}

const PATH: &str = "/bench.Head/Submit";

/// The service as the compiler of `.proto` files writes it.
#[derive(Clone, Copy)]
struct Head;

impl tonic::server::NamedService for Head {
    const NAME: &'static str = "bench.Head";
}

struct Take;

impl tonic::server::UnaryService<Submit> for Take {
    type Response = Submitted;
    type Future = BoxFuture<Response<Submitted>, Status>;

    fn call(&mut self, request: Request<Submit>) -> Self::Future {
        let jobs = request.into_inner().jobs.iter().map(|_| 7).collect();
        Box::pin(async move { Ok(Response::new(Submitted { jobs })) })
    }
}

impl<B> Service<http::Request<B>> for Head
where
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        Box::pin(async move {
            if request.uri().path() != PATH {
                let mut response = http::Response::new(tonic::body::Body::empty());
                *response.status_mut() = http::StatusCode::NOT_FOUND;
                return Ok(response);
            }
            let mut grpc = tonic::server::Grpc::new(ProstCodec::default());
            Ok(grpc.unary(Take, request).await)
        })
    }
}

/// A server that takes every job in as number 7.
pub(crate) async fn serve(folders: &Folders) -> Result<SocketAddr, Failure> {
    let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into())?.with_nodelay(Some(true));
    let address = incoming.local_addr()?;
    let tls = ServerTlsConfig::new().identity(identity(&folders.head)?).client_ca_root(authority(&folders.head)?);
    let server = Server::builder().tls_config(tls)?.add_service(Head);
    tokio::spawn(server.serve_with_incoming(incoming));
    Ok(address)
}

pub(crate) async fn run(
    folders: &Folders,
    address: SocketAddr,
    n_connections: usize,
    n_requests: usize,
) -> Result<Run, Failure> {
    let tls = ClientTlsConfig::new()
        .ca_certificate(authority(&folders.user)?)
        .identity(identity(&folders.user)?)
        .domain_name(rota_transport::quic::USERS_DOMAIN);
    let mut clients = Vec::new();
    for _ in 0..n_connections {
        let endpoint = Channel::from_shared(format!("https://{address}"))?.tls_config(tls.clone())?.tcp_nodelay(true);
        clients.push(endpoint.connect().await?);
    }
    let request = Submit { jobs: vec![job()], key: 1 };
    together(clients, n_requests, |client| {
        let request = request.clone();
        async move { ask(client.as_ref().clone(), request).await }
    })
    .await
}

async fn ask(channel: Channel, request: Submit) -> Result<(), Failure> {
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await?;
    let codec = ProstCodec::<Submit, Submitted>::default();
    let answer = grpc.unary(Request::new(request), PathAndQuery::from_static(PATH), codec).await?;
    if answer.into_inner().jobs.is_empty() { Err("no job was taken".into()) } else { Ok(()) }
}

fn job() -> Job {
    Job {
        name: "train".into(),
        model: "res50".into(),
        batch: 64,
        gpus: 2,
        gpu_type: "V100".into(),
        work: 1000.0,
        argv: vec!["python".into(), "train.py".into()],
        env: [("EPOCHS".to_owned(), "90".to_owned())].into(),
        working_directory: "/home/ada".into(),
        checkpoint_directory: "/shared/ada".into(),
        log_file_bytes: 1 << 20,
        n_log_files: 4,
        most_failures: 5,
    }
}

fn identity(folder: &Path) -> Result<Identity, Failure> {
    Ok(Identity::from_pem(std::fs::read(folder.join("cert.pem"))?, std::fs::read(folder.join("key.pem"))?))
}

fn authority(folder: &Path) -> Result<Certificate, Failure> {
    Ok(Certificate::from_pem(std::fs::read(folder.join("ca.pem"))?))
}
