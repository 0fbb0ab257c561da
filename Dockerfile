# The page of colocam with the ready model, on a CPU:
#   docker build -t colocam .
#   docker run --rm --network host -v colocam-page:/page colocam
# It prints the address to open in a browser; drop videos on the page. The page answers this machine alone, hence
# --network host. Any other command, here for a folder of videos:
#   docker run --rm -v "$PWD:/work" -w /work --user "$(id -u)" colocam localize videos -o out
# With CUDA, and with training (the wheels of torch bring CUDA along; the host needs NVIDIA's container toolkit):
#   docker build --build-arg EXTRAS=serve,train,onnx -t colocam:cuda . && docker run --rm --gpus all --network host -v colocam-page:/page colocam:cuda
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source /source/models

FROM python:3.12-slim
ARG EXTRAS=serve
COPY constraints.txt /constraints.txt
COPY --from=build /wheels /wheels
RUN python -m pip install --no-cache-dir -c /constraints.txt "$(ls /wheels/colocam-*.whl)[${EXTRAS}]" /wheels/colocam_models-*.whl && rm -rf /wheels
RUN useradd --create-home colocam && mkdir /page && chown colocam /page
USER colocam
VOLUME /page
ENTRYPOINT ["colocam"]
CMD ["serve", "--out", "/page", "--port", "8000", "--no-open"]
